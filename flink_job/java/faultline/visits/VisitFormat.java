package faultline.visits;

import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.RowType;

/** Turns the value of a record into the columns visit_id, event_time, refused and record_value. */
public final class VisitFormat extends AbstractDeserializationSchema {
    private final VisitRule rule;

    public VisitFormat(VisitRule rule, RowType columns) {
        super(InternalTypeInfo.of(columns));
        this.rule = rule;
    }

    /** One row for each value, a null one too: a record that is not a visit has neither visit_id nor event_time. */
    public RowData deserialize(byte[] value) {
        int result = rule.read(value);
        GenericRowData row = new GenericRowData(4);
        if (result == VisitRule.VISIT) {
            row.setField(0, StringData.fromString(rule.visitId));
            row.setField(1, Long.valueOf(rule.eventTime));
        }
        row.setField(2, Integer.valueOf(result));
        row.setField(3, value);
        return row;
    }
}
