"""What runs in a browser: plain ES modules, style sheets and pages, without a build step or third-party code."""
