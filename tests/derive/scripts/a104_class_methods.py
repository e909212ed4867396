import argparse
class Base:
    OPTIONS = {"--a": dict(type=int)}
    @classmethod
    def parser(cls):
        p = argparse.ArgumentParser()
        for k, v in cls.OPTIONS.items():
            p.add_argument(k, **v)
        cls.more(p)
        return p
    @classmethod
    def more(cls, p): pass
class Sub(Base):
    OPTIONS = {**Base.OPTIONS, "--b": dict(action="store_true")}
    @classmethod
    def more(cls, p):
        p.add_argument("--c", choices=list(cls.OPTIONS))
Sub.parser().parse_args()
