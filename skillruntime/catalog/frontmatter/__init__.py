"""Read the frontmatter of SKILL.md files."""
