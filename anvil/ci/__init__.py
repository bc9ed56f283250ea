"""Building and checking an index in a CI job: what the action, a GitLab job or a shell script calls."""
