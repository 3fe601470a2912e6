"""The demonstration: an agent's memory survives its machine, and every forgery is refused.

`story.tell` runs it for real on the embedded chain; the conversation and the questions are files of this
package.
"""
