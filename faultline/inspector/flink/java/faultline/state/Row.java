package faultline.state;

import org.apache.flink.api.common.typeutils.TypeSerializer;

/** One entry of one state, with the serializers that know its types. Readers fill the same row again and again. */
final class Row {
    String state;
    /** value, list, map, reducing, aggregating; timers; split list, union list, broadcast. */
    String kind;
    Object key;
    TypeSerializer keyType;
    Object namespace;
    /** The key inside a map state. */
    Object entry;
    TypeSerializer entryType;
    Object value;
    TypeSerializer valueType;

    void clear() {
        key = namespace = entry = value = null;
        keyType = entryType = valueType = null;
    }

    /** Takes the rows of a reader. */
    interface Sink {
        /** A state that exists, whether it has entries or not. */
        void state(String name, String kind);

        void row(Row row) throws Exception;

        /** A state, or a part of it, whose bytes nothing here can read. Entries or bytes -1: not known. */
        void unread(String state, String kind, String why, long entries, long bytes) throws Exception;
    }

    /** The bytes of a key or a value whose type is not here. */
    static final class Unknown {
        final String type;
        final byte[] bytes;

        Unknown(String type, byte[] bytes) {
            this.type = type;
            this.bytes = bytes;
        }
    }
}
