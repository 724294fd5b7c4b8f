"""Models and analytics behind the book *Racing to Simplicity*.

Importing `lib` alone costs nothing; import the module you need: `from lib import deep_linear, plots`.
"""
