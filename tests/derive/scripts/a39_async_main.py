"""Fetch pages, all at once."""
import argparse
import asyncio


async def fetch(urls, limit):
    return [u for u in urls][:limit]


async def main():
    parser = argparse.ArgumentParser(description="Fetch pages")
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--limit", type=int, default=5)
    args = parser.parse_args()
    print(await fetch(args.urls, args.limit))


if __name__ == "__main__":
    asyncio.run(main())
