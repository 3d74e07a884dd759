package faultline.state;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;

import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.typeutils.runtime.RowSerializer;
import org.apache.flink.api.java.typeutils.runtime.TupleSerializerBase;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.windowing.windows.GlobalWindow;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.LogicalType;

/**
 * Values of state as JSON.
 *
 * <p>SQL rows and tuples are arrays, since state has no names for their fields; a row of one field is that field.
 * Bytes, and what cannot be read, are their number and a checksum.
 */
final class Json {
    private final StringBuilder out;
    /** Names of the fields of a state's rows of this width; null: none are known. */
    private final String[] names;

    Json(StringBuilder out, String[] names) {
        this.out = out;
        this.names = names;
    }

    /** Appends one line of JSON. */
    void row(String operator, Row row) throws Exception {
        head(operator, row.state, row.kind);
        boolean folded = false;
        if (row.namespace instanceof TimeWindow) {
            TimeWindow window = (TimeWindow) row.namespace;
            out.append(", \"window_start\": ").append(window.getStart());
            out.append(", \"window_end\": ").append(window.getEnd());
        } else if (row.namespace instanceof Long) {
            out.append(", \"window_end\": ").append(row.namespace);
        } else {
            folded = row.namespace != null && !(row.namespace instanceof VoidNamespace)
                && !(row.namespace instanceof GlobalWindow);
        }
        if (row.keyType != null || row.key != null) {
            out.append(", \"key\": ").append(folded ? "{\"key\": " : "");
            value(row.key, row.keyType);
            if (folded) {
                out.append(", \"namespace\": ");
                text(String.valueOf(row.namespace));
                out.append('}');
            }
        }
        if (row.entryType != null || row.entry != null) {
            out.append(", \"entry\": ");
            value(row.entry, row.entryType);
        }
        out.append(", \"value\": ");
        if (names != null && row.value instanceof RowData && ((RowData) row.value).getArity() == names.length) {
            fields((RowData) row.value, types(row.valueType), true);
        } else {
            value(row.value, row.valueType);
        }
        out.append("}\n");
    }

    /** Appends one line of JSON for state that cannot be read. */
    void unread(String operator, String state, String kind, String why, long entries, long bytes) {
        head(operator, state, kind);
        out.append(", \"value\": {\"unknown\": ");
        text(why);
        if (entries >= 0) {
            out.append(", \"entries\": ").append(entries);
        }
        if (bytes >= 0) {
            out.append(", \"bytes\": ").append(bytes);
        }
        out.append("}}\n");
    }

    private void head(String operator, String state, String kind) {
        out.append("{\"operator\": ");
        text(operator);
        out.append(", \"state\": ");
        text(state);
        out.append(", \"kind\": ");
        text(kind);
    }

    private void value(Object value, TypeSerializer type) throws Exception {
        if (value == null) {
            out.append("null");
        } else if (value instanceof Boolean || value instanceof Byte || value instanceof Short
            || value instanceof Integer || value instanceof Long || value instanceof BigInteger) {
            out.append(value);
        } else if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            if (Double.isNaN(number) || Double.isInfinite(number)) {
                text(String.valueOf(value));
            } else {
                out.append(value);
            }
        } else if (value instanceof BigDecimal) {
            text(((BigDecimal) value).toPlainString());
        } else if (value instanceof byte[]) {
            bytes(null, (byte[]) value);
        } else if (value instanceof Row.Unknown) {
            bytes(((Row.Unknown) value).type, ((Row.Unknown) value).bytes);
        } else if (value instanceof RowData && type instanceof RowDataSerializer) {
            fields((RowData) value, types(type), false);
        } else if (value instanceof TimeWindow) {
            TimeWindow window = (TimeWindow) value;
            out.append("{\"start\": ").append(window.getStart());
            out.append(", \"end\": ").append(window.getEnd()).append('}');
        } else if (value instanceof TtlValue) {
            // Of a timestamp and a value.
            TypeSerializer inside = type == null ? null : ((TypeSerializer[]) Types.field(type, "fieldSerializers"))[1];
            out.append("{\"value\": ");
            value(((TtlValue) value).getUserValue(), inside);
            out.append(", \"last_access\": ").append(((TtlValue) value).getLastAccessTimestamp()).append('}');
        } else if (value instanceof Tuple) {
            TypeSerializer[] parts =
                type instanceof TupleSerializerBase ? ((TupleSerializerBase) type).getFieldSerializers() : null;
            Tuple tuple = (Tuple) value;
            out.append('[');
            for (int at = 0; at < tuple.getArity(); at++) {
                out.append(at == 0 ? "" : ", ");
                value(tuple.getField(at), parts == null ? null : parts[at]);
            }
            out.append(']');
        } else if (value instanceof org.apache.flink.types.Row) {
            named((org.apache.flink.types.Row) value, type);
        } else if (value instanceof Map) {
            map((Map) value, type);
        } else if (value instanceof Iterable) {
            TypeSerializer element =
                type instanceof ListSerializer ? ((ListSerializer) type).getElementSerializer() : null;
            list((Iterable) value, element);
        } else if (value.getClass().isArray()) {
            for (int at = 0; at < Array.getLength(value); at++) {
                out.append(at == 0 ? "[" : ", ");
                value(Array.get(value, at), null);
            }
            out.append(Array.getLength(value) == 0 ? "[]" : "]");
        } else {
            text(String.valueOf(value));
        }
    }

    private void list(Iterable values, TypeSerializer type) throws Exception {
        out.append('[');
        int start = out.length();
        for (Object each : values) {
            out.append(out.length() == start ? "" : ", ");
            value(each, type);
        }
        out.append(']');
    }

    private void map(Map values, TypeSerializer type) throws Exception {
        TypeSerializer keys = type instanceof MapSerializer ? ((MapSerializer) type).getKeySerializer() : null;
        TypeSerializer inside = type instanceof MapSerializer ? ((MapSerializer) type).getValueSerializer() : null;
        out.append('{');
        int start = out.length();
        for (Object each : values.entrySet()) {
            Map.Entry pair = (Map.Entry) each;
            out.append(out.length() == start ? "" : ", ");
            StringBuilder key = new StringBuilder();
            if (pair.getKey() instanceof String) {
                key.append((String) pair.getKey());
            } else {
                new Json(key, null).value(pair.getKey(), keys);
            }
            text(key.toString());
            out.append(": ");
            boolean isField = type instanceof Types.Fields;
            value(pair.getValue(), isField ? ((Types.Fields) type).of((String) pair.getKey()) : inside);
        }
        out.append('}');
    }

    private void named(org.apache.flink.types.Row row, TypeSerializer type) throws Exception {
        RowSerializer known = type instanceof RowSerializer ? (RowSerializer) type : null;
        TypeSerializer[] parts =
            known == null ? new TypeSerializer[row.getArity()] : (TypeSerializer[]) Types.field(known, "fieldSerializers");
        Object positions = known == null ? null : Types.field(known, "positionByName");
        Object[] names = positions == null ? null : ((Map) positions).keySet().toArray();
        out.append(names == null ? '[' : '{');
        for (int at = 0; at < row.getArity(); at++) {
            out.append(at == 0 ? "" : ", ");
            if (names != null) {
                text(String.valueOf(names[at]));
                out.append(": ");
            }
            value(row.getField(at), parts[at]);
        }
        out.append(names == null ? "]" : "}");
    }

    private static LogicalType[] types(TypeSerializer rows) throws Exception {
        return (LogicalType[]) Types.field(rows, "types");
    }

    private void fields(RowData row, LogicalType[] types, boolean isNamed) throws Exception {
        boolean isOne = types.length == 1;
        out.append(isOne ? "" : isNamed ? "{" : "[");
        for (int at = 0; at < types.length; at++) {
            out.append(at == 0 ? "" : ", ");
            if (isNamed) {
                text(names[at]);
                out.append(": ");
            }
            sql(types[at], RowData.createFieldGetter(types[at], at).getFieldOrNull(row));
        }
        out.append(isOne ? "" : isNamed ? "}" : "]");
    }

    /** Appends a value of the table runtime, whose own classes do not know their types. */
    private void sql(LogicalType type, Object value) throws Exception {
        String root = type.getTypeRoot().name();
        if (value == null) {
            out.append("null");
        } else if (value instanceof RowData) {
            List children = type.getChildren();
            fields((RowData) value, (LogicalType[]) children.toArray(new LogicalType[children.size()]), false);
        } else if (value instanceof ArrayData) {
            array((ArrayData) value, (LogicalType) type.getChildren().get(0));
        } else if (value instanceof MapData) {
            MapData map = (MapData) value;
            out.append("{\"keys\": ");
            array(map.keyArray(), (LogicalType) type.getChildren().get(0));
            out.append(", \"values\": ");
            array(map.valueArray(), root.equals("MULTISET") ? null : (LogicalType) type.getChildren().get(1));
            out.append('}');
        } else if (value instanceof RawValueData) {
            bytes("only the job's own serializer reads it", null);
        } else if (root.equals("DATE")) {
            text(LocalDate.ofEpochDay(((Number) value).longValue()).toString());
        } else if (root.equals("TIME_WITHOUT_TIME_ZONE")) {
            text(LocalTime.ofNanoOfDay(((Number) value).longValue() * 1000000L).toString());
        } else {
            value(value, null);
        }
    }

    private void array(ArrayData values, LogicalType type) throws Exception {
        for (int at = 0; at < values.size(); at++) {
            out.append(at == 0 ? "[" : ", ");
            if (type == null) {
                out.append(values.getInt(at));
            } else {
                sql(type, ArrayData.createElementGetter(type).getElementOrNull(values, at));
            }
        }
        out.append(values.size() == 0 ? "[]" : "]");
    }

    private void bytes(String unknown, byte[] content) {
        out.append('{');
        if (unknown != null) {
            out.append("\"unknown\": ");
            text(unknown);
        }
        if (content != null) {
            CRC32 sum = new CRC32();
            sum.update(content, 0, content.length);
            out.append(unknown == null ? "" : ", ").append("\"bytes\": ").append(content.length);
            out.append(", \"crc32\": \"").append(Long.toHexString(sum.getValue())).append('"');
        }
        out.append('}');
    }

    private void text(String words) {
        out.append('"');
        for (int at = 0; at < words.length(); at++) {
            char each = words.charAt(at);
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each < ' ' || each == '\u007f' || Character.isSurrogate(each)) {
                String number = Integer.toHexString(each);
                out.append("\\u").append("0000".substring(number.length())).append(number);
            } else {
                out.append(each);
            }
        }
        out.append('"');
    }
}
