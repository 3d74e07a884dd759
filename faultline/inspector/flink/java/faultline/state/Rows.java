package faultline.state;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;

import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.TextNode;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.data.RowData;

/**
 * The state of one operator as lines of JSON: operator, state, kind, key, window_start, window_end (ms), entry, value.
 *
 * <p>All subtasks together, in the order of the files. Fields that an entry does not have are left out. What cannot be
 * read is a line whose value has `unknown` and the bytes.
 */
public final class Rows {
    private static final int CHUNK = 1 << 18;
    private static final int CHUNKS = 8;
    private static final String END = "";
    private static final Long NO_START = Long.valueOf(Long.MIN_VALUE);

    private final OperatorState operator;
    private final String label;
    private final String[] names;
    private final Types types;
    private final ArrayBlockingQueue chunks = new ArrayBlockingQueue(CHUNKS);
    private volatile Throwable failed;
    private Thread reader;

    /** `names`: of the fields of its rows, where this project knows them; else null. */
    public Rows(OperatorState operator, String label, String[] names, ClassLoader classes) {
        this.operator = operator;
        this.label = label;
        this.names = names;
        this.types = new Types(classes);
    }

    private void keyed(Row.Sink sink) throws Exception {
        KeyedFiles files = new KeyedFiles(types, operator.getMaxParallelism(), sink);
        for (Object each : operator.getStates()) {
            for (Object handle : ((OperatorSubtaskState) each).getManagedKeyedState()) {
                files.read((KeyedStateHandle) handle);
            }
            for (Object handle : ((OperatorSubtaskState) each).getRawKeyedState()) {
                long size = ((KeyedStateHandle) handle).getStateSize();
                sink.unread("raw keyed state", "unknown", "written by the operator itself", -1, size);
            }
        }
    }

    private void lists(Row.Sink sink, Collection without) throws Exception {
        OperatorFiles files = new OperatorFiles(types, without, sink);
        for (Object each : operator.getStates()) {
            for (Object handle : ((OperatorSubtaskState) each).getManagedOperatorState()) {
                files.read((OperatorStateHandle) handle);
            }
        }
    }

    /** Counts the state, and adds windows and the first `rows` entries of each state: an array of JSON. */
    public String summary(int rows, boolean withLists) throws Exception {
        Summary summary = new Summary(rows);
        keyed(summary);
        if (withLists) {
            lists(summary, Collections.EMPTY_SET);
        }
        StringBuilder out = new StringBuilder("[");
        for (Object each : summary.states.values()) {
            out.append(out.length() == 1 ? "" : ", ");
            ((Counted) each).append(out);
        }
        return out.append(']').toString();
    }

    /** Starts to read all state but the lists of these names, at most `limit` entries of each (-1: all). */
    public void start(final long limit, final Collection without) {
        final Lines lines = new Lines(limit);
        reader = new Thread() {
            public void run() {
                try {
                    keyed(lines);
                    lists(lines, without);
                    lines.flush();
                } catch (InterruptedException stopped) {
                    return;
                } catch (Throwable problem) {
                    failed = problem;
                }
                try {
                    chunks.put(END);
                } catch (InterruptedException stopped) {
                    return;
                }
            }
        };
        reader.setDaemon(true);
        reader.start();
    }

    /** The next lines of what `start` reads; empty at the end. */
    public String next() throws Throwable {
        String lines = (String) chunks.take();
        if (lines.equals(END) && failed != null) {
            throw failed;
        }
        return lines;
    }

    private final class Lines implements Row.Sink {
        private final long limit;
        private final Map counts = new HashMap();
        private final StringBuilder out = new StringBuilder();
        private final Json json = new Json(out, names);

        Lines(long limit) {
            this.limit = limit;
        }

        public void state(String name, String kind) {
        }

        public void row(Row row) throws Exception {
            if (limit >= 0) {
                long[] count = (long[]) counts.get(row.state);
                if (count == null) {
                    count = new long[1];
                    counts.put(row.state, count);
                }
                if (count[0]++ >= limit) {
                    return;
                }
            }
            json.row(label, row);
            if (out.length() > CHUNK) {
                flush();
            }
        }

        public void unread(String state, String kind, String why, long entries, long bytes) {
            json.unread(label, state, kind, why, entries, bytes);
        }

        void flush() throws InterruptedException {
            if (out.length() > 0) {
                chunks.put(out.toString());
                out.setLength(0);
            }
        }
    }

    /** One state: entries, windows (keys and, where the rows are this project's own, visits), lines. */
    private final class Counted {
        private final String name;
        private final String kind;
        private long entries;
        private final TreeMap windows = new TreeMap();
        private final List lines = new ArrayList();
        private Object key;
        private Object namespace;
        /** The reason why a part of it, or all, was not read, and how many bytes that are (-1: not known). */
        private String why = "";
        private long bytes;

        Counted(String name, String kind) {
            this.name = name;
            this.kind = kind;
        }

        void row(Row row) {
            entries++;
            unknown(row.key);
            unknown(row.value);
            long end;
            long start = NO_START.longValue();
            if (row.namespace instanceof Long) {
                end = ((Long) row.namespace).longValue();
            } else if (row.namespace instanceof TimeWindow) {
                start = ((TimeWindow) row.namespace).getStart();
                end = ((TimeWindow) row.namespace).getEnd();
            } else {
                return;
            }
            TreeMap ending = (TreeMap) windows.get(Long.valueOf(end));
            if (ending == null) {
                ending = new TreeMap();
                windows.put(Long.valueOf(end), ending);
            }
            long[] window = (long[]) ending.get(Long.valueOf(start));
            if (window == null) {
                window = new long[2];
                ending.put(Long.valueOf(start), window);
            }
            // The entries of one key of a map state follow each other.
            if (!row.kind.equals("map") || !row.namespace.equals(namespace) || !row.key.equals(key)) {
                window[0]++;
            }
            key = row.key;
            namespace = row.namespace;
            if (names != null && row.value instanceof RowData && !((RowData) row.value).isNullAt(0)) {
                window[1] += ((RowData) row.value).getLong(0);
            }
        }

        private void unknown(Object part) {
            if (part instanceof Row.Unknown) {
                why = ((Row.Unknown) part).type;
                bytes = bytes < 0 ? -1 : bytes + ((Row.Unknown) part).bytes.length;
            }
        }

        void append(StringBuilder out) {
            out.append("{\"name\": ").append(quoted(name)).append(", \"kind\": ").append(quoted(kind));
            out.append(", \"entries\": ").append(entries);
            out.append(", \"unknown\": ").append(quoted(why)).append(", \"bytes\": ").append(bytes);
            out.append(", \"windows\": [");
            String separator = "";
            for (Object each : windows.entrySet()) {
                Map.Entry ending = (Map.Entry) each;
                for (Object window : ((Map) ending.getValue()).entrySet()) {
                    long[] counts = (long[]) ((Map.Entry) window).getValue();
                    Object start = ((Map.Entry) window).getKey();
                    out.append(separator).append('[').append(start.equals(NO_START) ? "null" : start).append(", ");
                    out.append(ending.getKey()).append(", ").append(counts[0]).append(", ");
                    out.append(names == null ? "null" : String.valueOf(counts[1])).append(']');
                    separator = ", ";
                }
            }
            out.append("], \"rows\": [");
            for (int at = 0; at < lines.size(); at++) {
                out.append(at == 0 ? "" : ", ").append(lines.get(at));
            }
            out.append("]}");
        }
    }

    private static String quoted(String words) {
        return TextNode.valueOf(words).toString();
    }

    private final class Summary implements Row.Sink {
        private final int limit;
        private final Map states = new LinkedHashMap();

        Summary(int limit) {
            this.limit = limit;
        }

        public void state(String name, String kind) {
            of(name, kind);
        }

        private Counted of(String state, String kind) {
            Counted found = (Counted) states.get(state);
            if (found == null) {
                found = new Counted(state, kind);
                states.put(state, found);
            }
            return found;
        }

        public void row(Row row) throws Exception {
            Counted state = of(row.state, row.kind);
            state.row(row);
            if (state.lines.size() < limit) {
                StringBuilder line = new StringBuilder();
                new Json(line, names).row(label, row);
                state.lines.add(line.toString());
            }
        }

        public void unread(String state, String kind, String why, long entries, long bytes) {
            Counted found = of(state, kind);
            found.why = why;
            found.entries += Math.max(0, entries);
            found.bytes = bytes < 0 || found.bytes < 0 ? -1 : found.bytes + bytes;
        }
    }
}
