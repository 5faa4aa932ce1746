"""The published cleaners' rules, faults included: a voice reads text as it did when it was trained."""
