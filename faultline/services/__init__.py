"""The services beside the engines, and the scripts that start each service.

Each service has one start script, the same in a container and under a keeper: it execs the service, so that a signal
reaches the service itself. `kafka/` writes the broker's configuration, formats its storage and creates the
topics; `store/` does the same for the object store and its bucket. `web_guard/` is the Java filter that refuses
foreign web pages at the engines' own pages; `build.py` compiles it. `prometheus.py` runs Prometheus on the figures of
faultline/probes/exporter.py.

`restore.py` submits the Flink job from a checkpoint where the JobManager runs, and asks the inspector which one.
"""
