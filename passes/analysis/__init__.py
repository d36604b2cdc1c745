"""Analyses: facts about a module that passes and backends ask for. They never edit."""
