"""Pictures of the web pages of Flink and Spark for the docs, by a headless browser on a running stack."""
