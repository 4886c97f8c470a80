"""The pages of flame graphs and of `perfuse view`, and the server of the latter.

What runs in a browser is plain ES modules, style sheets and pages, without a build step or third-party code.
"""
