#!/usr/bin/env bash
# Summary: The same query into four sinks, killed at the same moment: which of them has rows twice?
# Usage: scripts/walkthroughs/22_which_sink.sh [--pause]
#
# Its files stay in output/pipelines to look at; docs/which_sink.md has more sinks and more faults.
# Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run.
# Needs: Java and Python; of the stack it starts the broker only
# Takes: 12 minutes
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../lib/walkthrough.sh"

# break_it FILE: kill the pipeline in mid-flight, then take its newest commit away; the table goes to TABLE.
break_it() {
  run cat "$1" | indent
  TABLE="$(run scripts/pipeline.sh faults "$1" kill newest-commit-deleted | sed -n '/^row /,$p')"
  indent <<<"${TABLE}"
}

# counted ROW COLUMN: a figure of the table, without its thousands separator.
counted() {
  awk -v row="$1" -v column="$2" '$1 == row { gsub(",", ""); print $column }' <<<"${TABLE}"
}

# none_twice: no row of the table has lost or repeated anything.
none_twice() {
  local row
  for row in kill newest-commit-deleted; do
    fact "${row}: rows lost" "$(counted "${row}" 3)" 0
    fact "${row}: rows repeated" "$(counted "${row}" 4)" 0
  done
}

flags "$@"

step "plain append: foreachBatch adds rows to a table of Postgres"
expect "the batch that was killed, or whose commit is gone, runs again, and its rows are inserted again"
break_it pipelines/postgres_append/postgres_append.toml
fact "kill: rows lost" "$(counted kill 3)" 0
fact "newest-commit-deleted: rows lost" "$(counted newest-commit-deleted 3)" 0
fact_is "newest-commit-deleted: rows repeated" "$(counted newest-commit-deleted 4)" -gt 0
prove "A plain append loses nothing, and has the rows of a repeated batch twice."

step "the file sink: Spark's own log names the files of each batch"
expect "the batch runs again; the log _spark_metadata has it already, so no file is added"
break_it pipelines/sinks/to_file_sink.toml
none_twice
prove "The file sink has no row twice, for a reader that follows its log."

step "a key: a row that is in the table is not inserted again"
break_it pipelines/sinks/to_postgres_upsert.toml
none_twice
prove "An insert by key has no row twice, whatever runs again."

step "the batch's id: rows and id are inserted in one transaction"
expect "the batch runs again under the same id, finds this id in the table, and inserts nothing"
break_it pipelines/sinks/to_postgres_batch_id.toml
none_twice
prove "With the batch's id in the same transaction, no row is written twice."
finish
