"""Twelve tasks over the skills of ``skills.tsv``.

Some calls have one mistake that models make: a number in quotes, an enum member in
capitals.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from benchmarks.real_skills.steps import (
    Call,
    Load,
    ReadMade,
    Resource,
    Result,
    Shell,
    Task,
    Write,
)

FEATURES = """name,reach,impact,confidence,effort
Export,900,high,high,s
Themes,4000,low,low,m
Sharing,1500,medium,medium,l
"""


def ranks_features(result: Result) -> bool:
    """900 x 2 x 1.0 / 3 and 4000 x 0.5 x 0.5 / 5 are the best two scores."""
    return re.search(r"600\.0.*200\.0", result.answers, re.DOTALL) is not None


def shop(workspace: Path) -> None:
    """Write a page with faults, beside a hidden file."""
    pages = workspace / "shop"
    pages.mkdir()
    (pages / ".env").write_text("TOKEN=none\n")
    page = "<html><head><title>Shop</title></head><body><img src='a.png'></body></html>"
    (pages / "index.html").write_text(page)


def finds_page_faults(result: Result) -> bool:
    """Name the missing description and the image without a text."""
    faults = ("Missing meta description", "Image missing alt attribute")
    return all(fault in result.answers for fault in faults)


def web_project(workspace: Path) -> None:
    """Write a Next.js project with two routes."""
    for page in ("app/contact/page.tsx", "app/prices/page.tsx"):
        path = workspace / "web" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("export default function Page() { return <main/> }\n")
    package = {"name": "web", "dependencies": {"next": "15.0.0"}}
    (workspace / "web" / "package.json").write_text(json.dumps(package))
    (workspace / "web" / "next.config.mjs").write_text("export default {}\n")


def has_both_routes(result: Result) -> bool:
    """Both routes are in the file."""
    sitemap = result.text("sitemap.xml")
    return "https://example.org/prices<" in sitemap and sitemap.count("<loc>") == 2


TOKENS = json.dumps({"colors": {"brand": {"500": "#ff5500"}}, "radius": {"lg": "14px"}})


def has_theme(result: Result) -> bool:
    """The theme has the color and the radius, as Tailwind 4 writes them."""
    theme = result.text("theme.css")
    return "--color-brand-500: #ff5500;" in theme and "--radius-lg: 14px;" in theme


def crate(workspace: Path) -> None:
    """Write a Rust crate that keeps a secret in memory."""
    source = workspace / "vault" / "src"
    source.mkdir(parents=True)
    (source / "lib.rs").write_text(
        "pub fn keep(secret_key: Vec<u8>) -> &'static [u8] {\n"
        "    Box::leak(secret_key.into_boxed_slice())\n}\n"
    )


def finds_leak(result: Result) -> bool:
    """The report names the line of ``Box::leak``."""
    report = result.text("findings.json")
    return "MISSING_SOURCE_ZEROIZE" in report and "lib.rs" in report


def runs(workspace: Path) -> None:
    """Write the grades of two runs, with a skill and without it."""
    for name, rate in (("with_skill", 0.75), ("without_skill", 0.5)):
        run = workspace / "grades" / "eval-1" / name / "run-1"
        run.mkdir(parents=True)
        (run / "grading.json").write_text(json.dumps({"summary": {"pass_rate": rate}}))


def has_difference(result: Result) -> bool:
    """The table has the difference of the two rates."""
    summary = json.loads(result.text("benchmark.json") or "{}").get("run_summary", {})
    return bool(summary.get("delta", {}).get("pass_rate") == "+0.25")


def deck(workspace: Path) -> None:
    """Write a deck of four slides."""
    from pptx import Presentation

    presentation = Presentation()
    for title in ("Plan", "Numbers", "Risks", "Next"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = title
    presentation.save(str(workspace / "review.pptx"))


def has_overview(result: Result) -> bool:
    """The picture has two rows of two slides."""
    from PIL import Image

    path = result.made("overview.jpg")
    if path is None:
        return False
    with Image.open(path) as picture:
        width, height = picture.size
    return 600 < width < 900 and 300 < height < 800


FONT = "canvas-fonts/BigShoulders-Bold.ttf"
POSTER = """
from PIL import Image, ImageDraw, ImageFont, PngImagePlugin
font = ImageFont.truetype("{resource:canvas-design/%s}", 64)
poster = Image.new("RGB", (480, 160), "white")
ImageDraw.Draw(poster).text((20, 40), "OPEN DAY", font=font, fill="black")
notes = PngImagePlugin.PngInfo()
notes.add_text("font", " ".join(font.getname()))
poster.save("poster.png", pnginfo=notes)
"""


def has_poster(result: Result) -> bool:
    """The picture is written in the skill's font, and not empty."""
    from PIL import Image

    path = result.made("poster.png")
    if path is None:
        return False
    with Image.open(path) as poster:
        is_drawn = poster.convert("L").getextrema() == (0, 255)
        return is_drawn and "Big Shoulders" in poster.info["font"]


REPORT = "SF:src/cart.ts\nDA:1,4\nDA:2,4\nDA:3,0\nDA:4,0\nDA:5,0\nend_of_record\n"
COVERAGE = """
import sys
sys.path.insert(0, "{directory:tdd-guide}/scripts")
from coverage_analyzer import CoverageAnalyzer
analyzer = CoverageAnalyzer()
analyzer.parse_coverage_report(open("{inputs}/lcov.info").read(), "lcov")
print("lines covered:", analyzer.calculate_summary()["line_coverage"])
"""


def has_coverage(result: Result) -> bool:
    """Two of five lines are covered."""
    return re.search(r"lines covered: 40(\.0)?\b", result.answers) is not None


def draft(workspace: Path) -> None:
    """Write a draft with faults."""
    (workspace / "prd.md").write_text(
        "# PRD: Gift cards\n\n## Success Metrics\n\nMore sales.\n\n## Risks\n\nN/A\n"
    )


def finds_draft_faults(result: Result) -> bool:
    """Name the faults of the draft, and how many there are."""
    counted = re.search(r"Summary: [1-9]\d* error", result.answers)
    return counted is not None and "with no explanation" in result.answers


def has_cost(result: Result) -> bool:
    """The total is that of 48 hours at the hourly price."""
    hourly = re.search(r"Hourly estimate: +\$([\d.]+)", result.answers)
    total = re.search(r"Total estimate: +\$([\d.]+)", result.answers)
    if hourly is None or total is None:
        return False
    return abs(float(total[1]) - 48 * float(hourly[1])) < 0.01


def letters(workspace: Path) -> None:
    """Write two essays and a cover."""
    from PIL import Image

    essays = workspace / "letters" / "essays"
    essays.mkdir(parents=True)
    (essays / "01-spring.md").write_text("# Spring\n\nThe garden is awake.\n")
    (essays / "02-autumn.md").write_text("# Autumn\n\nThe garden rests.\n")
    Image.new("RGB", (600, 800), "navy").save(workspace / "cover.png")


def has_book(result: Result) -> bool:
    """The book has both essays and the cover."""
    path = result.made("letters.epub")
    if path is None:
        return False
    with zipfile.ZipFile(path) as book:
        names = book.namelist()
        pages = [book.read(name) for name in names if name.endswith(".xhtml")]
    text = b"".join(pages)
    has_cover = any(name.endswith(".png") for name in names)
    return has_cover and b"is awake" in text and b"garden rests" in text


TASKS = (
    Task(
        "rank-features",
        "Which of these features should we build first?",
        (
            Load("product-manager-toolkit"),
            Write("features.csv", FEATURES),
            Call(
                "product-manager-toolkit/rice-prioritizer",
                {"input": "{inputs}/features.csv", "capacity": "12", "output": "JSON"},
                "python {skill:product-manager-toolkit}/scripts/rice_prioritizer.py "
                "{inputs}/features.csv --capacity 12 --output json",
            ),
        ),
        ranks_features,
    ),
    Task(
        "page-audit",
        "What is wrong with the pages in shop/?",
        (
            Load("seo-fundamentals"),
            Call(
                "seo-fundamentals/seo-checker",
                {"project_path": "shop"},
                "python {skill:seo-fundamentals}/scripts/seo_checker.py shop",
            ),
        ),
        finds_page_faults,
        shop,
    ),
    Task(
        "sitemap",
        "Write the sitemap of web/ for example.org",
        (
            Load("seo-optimizer"),
            Call(
                "seo-optimizer/generate-sitemap",
                {
                    "project_path": "web",
                    "args": [
                        "--domain",
                        "https://example.org",
                        "--output",
                        "sitemap.xml",
                    ],
                },
                "python {skill:seo-optimizer}/scripts/generate_sitemap.py web "
                "--domain https://example.org --output sitemap.xml",
            ),
        ),
        has_both_routes,
        web_project,
    ),
    Task(
        "theme",
        "Make a Tailwind theme of our orange and round corners",
        (
            Load("ui-ux-creative-coding"),
            Resource("ui-ux-creative-coding", "assets/Tokens.json"),
            Write("tokens.json", TOKENS),
            Call(
                "ui-ux-creative-coding/tokens-to-tailwind-theme",
                {"tokensPath": "{inputs}/tokens.json", "outPath": "theme.css"},
                "node {skill:ui-ux-creative-coding}/scripts/tokens_to_tailwind_theme.mjs "
                "{inputs}/tokens.json theme.css",
            ),
        ),
        has_theme,
    ),
    Task(
        "rust-secrets",
        "Does the crate vault leave secrets in memory?",
        (
            Load("zeroize-audit"),
            Call(
                "zeroize-audit/find-dangerous-apis",
                {"src": "vault", "out": "findings.json"},
                "python {skill:zeroize-audit}/tools/scripts/find_dangerous_apis.py "
                "--src vault --out findings.json",
            ),
            ReadMade("zeroize-audit", "findings.json"),
        ),
        finds_leak,
        crate,
    ),
    Task(
        "compare-runs",
        "How much better is it with the skill?",
        (
            Load("skill-creator"),
            Call(
                "skill-creator/aggregate-benchmark",
                {"benchmark_dir": "grades/", "skill-name": "notes"},
                "cd {skill:skill-creator} && python -m scripts.aggregate_benchmark "
                "$OLDPWD/grades --skill-name notes",
            ),
            ReadMade("skill-creator", "benchmark.json"),
        ),
        has_difference,
        runs,
    ),
    Task(
        "slide-overview",
        "Show all slides of review.pptx in one picture, two in a row",
        (
            Load("pptx"),
            Resource("pptx", "Editing.md"),
            Call(
                "pptx/thumbnail",
                {"input": "review.pptx", "output_prefix": "overview", "cols": "2"},
                "python {skill:pptx}/scripts/thumbnail.py review.pptx overview "
                "--cols 2",
            ),
        ),
        has_overview,
        deck,
    ),
    Task(
        "poster",
        "A poster OPEN DAY in the font Big Shoulders",
        (
            Load("canvas-design"),
            Resource("canvas-design", FONT, is_text=False),
            Write("poster.py", POSTER % FONT),
            Shell("python {inputs}/poster.py"),
        ),
        has_poster,
    ),
    Task(
        "coverage",
        "How many lines does this report cover?",
        (
            Load("tdd-guide"),
            Resource("tdd-guide", "scripts/coverage_analyzer.py"),
            Write("lcov.info", REPORT),
            Write("covered.py", COVERAGE),
            Shell("python {inputs}/covered.py"),
        ),
        has_coverage,
        own_code=True,
    ),
    Task(
        "spec-check",
        "Is prd.md complete?",
        (
            Load("product-spec"),
            Call(
                "product-spec/spec-lint",
                {"file": "prd.md", "type": "PRD", "strict": "true"},
                "python {skill:product-spec}/scripts/spec-lint.py prd.md --type prd "
                "--strict",
            ),
        ),
        finds_draft_faults,
        draft,
    ),
    Task(
        "machine-cost",
        "What do two days of a g2-standard-48 cost?",
        (
            Load("agent-platform-deploy"),
            Call(
                "agent-platform-deploy/calculate-cost",
                {"machine-type": "g2-standard-48", "hours": "48"},
                "python {skill:agent-platform-deploy}/scripts/calculate_cost.py "
                "--machine-type g2-standard-48 --hours 48",
            ),
        ),
        has_cost,
    ),
    Task(
        "book",
        "Make an EPUB of the essays in letters/, with cover.png",
        (
            Load("blog-to-kindle"),
            Call(
                "blog-to-kindle/compile-epub",
                {
                    "input": "letters",
                    "output": "letters.epub",
                    "cover": "cover.png",
                    "title": "Letters",
                },
                "python {skill:blog-to-kindle}/scripts/compile_epub.py --input letters "
                "--output letters.epub --cover cover.png --title Letters",
            ),
        ),
        has_book,
        letters,
    ),
)
