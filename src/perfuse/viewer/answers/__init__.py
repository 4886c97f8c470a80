"""Answers to the questions of the page: one module per question, each with functions from parameters to an answer."""
