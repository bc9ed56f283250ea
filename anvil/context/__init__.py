"""A repository's working knowledge: specs, plans, open tasks and decisions, over the same index and search as the docs.

    artifacts.py   what a file is, by its path, and the id that stays with the path
    boxes.py       check boxes as tasks, kept with the document they stand in
    answers.py     results, field by field as in the tool contract
    inventory.py   what an index holds, by artifact
    records.py     state.json, ingestion.log and errors.log
    yielding.py    an embedding provider that gives way to plain text
    ingesting.py   one run: compare, read what changed, publish, write down what was done
    repository.py  the object that the command line and the server hold
"""
