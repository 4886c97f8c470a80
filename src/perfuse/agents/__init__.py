"""`perfuse mcp`: a server of the Model Context Protocol, whose tools run the command line within limits."""
