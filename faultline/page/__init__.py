"""The live page: samples a running stack while somebody looks, serves them, and has buttons that break it.

`server.py` is one web server on loopback; `guard.py` refuses whatever does not come from its own page. `watching.py`
takes the samples of faultline/probes/, makes items of them by faultline/player/, and hands them to each open page;
`history.py` keeps those that a new page needs. `following.py` runs the inspector, which reads each checkpoint once.

`actions.py` has the buttons: steps of the fault matrix, shown as the lines that a person types. `lessons.py` has the
guided mode. `pictures/` takes the pictures of docs/pictures/ by a headless browser.
"""
