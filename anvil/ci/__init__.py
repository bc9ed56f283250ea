"""An index in a CI job: built, checked and reported, for the action, a GitLab job or a shell script."""
