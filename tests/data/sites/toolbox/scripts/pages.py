"""Pages that no file stands behind: one for each module, an inventory, and the navigation."""

import mkdocs_gen_files

MODULES = ("clamps", "saws")

for name in MODULES:
    with mkdocs_gen_files.open(f"modules/{name}.md", "w") as page:
        print(f"# The {name}\n\n::: toolbox.{name}", file=page)

with mkdocs_gen_files.open("inventory.md", "w") as page:
    print("# Inventory\n\nWhat hangs on the wall of the workshop, as counted on the day of the build.", file=page)
    for number, name in enumerate(MODULES, 1):
        print(f"\n## Shelf {number}\n\nShelf {number} holds the {name}, sorted by length.", file=page)

with mkdocs_gen_files.open("SUMMARY.md", "w") as nav:
    print("* [Toolbox](index.md)\n* [Inventory](inventory.md)\n* [API](api.md)\n* [Wood](tags.md)\n* Modules", file=nav)
    for name in MODULES:
        print(f"    * [{name.title()}](modules/{name}.md)", file=nav)
