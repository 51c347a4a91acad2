"""The report as one HTML page beside its figures."""

import html

import markdown

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; font-variant-numeric: tabular-nums; }
td, th { border: 1px solid #ccc; padding: 3px 8px; text-align: left; vertical-align: top; }
th { background: #f3f3f3; }
img { max-width: 100%; }
code { background: #f3f3f3; }
"""


def page(text: str) -> str:
    """Markdown to a complete page; headings get the anchors that GitHub gives them."""
    title = text.splitlines()[0].lstrip("# ")
    body = markdown.markdown(text, extensions=["tables", "toc"])
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n")
