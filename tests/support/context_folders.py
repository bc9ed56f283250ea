"""A small repository's working knowledge, as spec-kit and people lay it out."""

from __future__ import annotations

FILES = {
    "README.md": "# Ferry\n\nNot part of the context: it lies in no configured directory. Albatross.\n",
    "specs/001-booking/spec.md": """\
---
title: Booking a crossing
status: draft
---

# Feature Spec: Booking

A passenger books a crossing by phone or on the web. The gangway closes ten minutes before departure.

## Requirements

- **FR-001**: A booking MUST hold a vehicle length, unless it is for foot passengers only.
- **FR-002**: A booking MAY be changed until the gangway closes.
""",
    "specs/001-booking/plan.md": "# Implementation Plan: Booking\n\nOne table, two screens, a timetable.\n",
    "specs/001-booking/tasks.md": """\
# Tasks: Booking

## Phase 1: Setup

- [x] T001 Create the project
- [ ] T002 [P] Lay out the booking table in `db/schema.sql`
  - [ ] T002.1 With an index on the departure
  - [x] and without triggers

## Phase 2: User Story 1

* [ ] T012 [P] [US1] Screen for the phone desk
* [X] T013 [US1] Timetable in tests/timetable_test.py
1. [ ] [P] Describe the screens
2. [x] Ask the phone desk

```markdown
- [ ] T999 an example, not a task
```
""",
    "specs/001-booking/checklists/requirements.md": """\
# Requirements checklist

- [x] CHK001 No details
- [ ] CHK002 Testable
""",
    "specs/002-timetable/spec.md": "## Timetable\n\nDepartures come from the harbour office. Gangway times follow.\n",
    "specs/notes.md": "Loose notes without any heading.\n",
    ".specify/templates/tasks-template.md": "# Tasks: [FEATURE]\n\n- [ ] T001 [P] Sample task, replaced when used\n",
    "architecture/overview.md": "# Overview\n\nThe gangway service talks to the timetable service over a queue.\n",
    "architecture/adr/0001-use-sqlite.md": "# Use SQLite\n\nOne file a ship. Nobody administers a database at sea.\n",
    "operations/on-call.md": "# On call\n\nWhoever is on call has the key of the ticket office.\n",
}

CONTEXT_JSON = '{"name": "ferry", "owners": ["harbour"], "nested": {"null": null, "numbers": [1, 2.5]}}'
