"""The page itself: items, HTML and scripts, which draw a running stack and play a recorded run in the same way.

`items.py` turns samples into items, one change after the other; whatever draws has only these. `document.py` makes the
HTML, with links to its scripts for the server of faultline/page/, or with all of them inside as one file. `replay.py`
makes such a file of the samples of a row, which then plays without a stack.

In `static/`, `store.js` keeps the items, `strips.js`, `chart.js` and `panels.js` draw them, and `main.js` puts the
parts together; `live.js` takes items from a server and `player.js` from the file. `vendor/` has one
library, uPlot, unchanged.
"""
