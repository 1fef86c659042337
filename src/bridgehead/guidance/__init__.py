"""What a model or a person has to know to use the tools: pages of Markdown, made from the live catalog.

A page speaks of one view only, so it never names a tool its reader cannot call. Knows no HTTP, no MCP messages and no
SQL; the built-in `guidance` tool and the surfaces show what is written here.
"""

from bridgehead.guidance.instructions import HEAD_LENGTH, instructions
from bridgehead.guidance.pages import TopicUnknown, render, topics
from bridgehead.guidance.words import GUIDANCE_TOOL, READ_TOOL

__all__ = ["GUIDANCE_TOOL", "HEAD_LENGTH", "READ_TOOL", "TopicUnknown", "instructions", "render", "topics"]
