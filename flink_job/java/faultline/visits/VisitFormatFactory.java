package faultline.visits;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.RowType;

/** The format 'visit' of a table. Found by META-INF/services. */
public final class VisitFormatFactory implements DeserializationFormatFactory {
    private static final ConfigOption ID_PATTERN = ConfigOptions.key("visit-id-pattern").stringType().noDefaultValue();
    private static final ConfigOption TIME_PATTERN =
        ConfigOptions.key("event-time-pattern").stringType().noDefaultValue();
    private static final ConfigOption MAX_NESTING = ConfigOptions.key("max-nesting").intType().noDefaultValue();
    private static final String COLUMNS = "ROW<`visit_id` STRING, `event_time` BIGINT, `refused` INT, `record_value` BYTES>";

    public String factoryIdentifier() {
        return "visit";
    }

    public Set requiredOptions() {
        return new HashSet(Arrays.asList(new ConfigOption[] {ID_PATTERN, TIME_PATTERN, MAX_NESTING}));
    }

    public Set optionalOptions() {
        return Collections.emptySet();
    }

    public DecodingFormat createDecodingFormat(DynamicTableFactory.Context context, ReadableConfig options) {
        return new Decoding(new VisitRule(
            (String) options.get(ID_PATTERN),
            (String) options.get(TIME_PATTERN),
            ((Integer) options.get(MAX_NESTING)).intValue()
        ));
    }

    private static final class Decoding implements DecodingFormat {
        private final VisitRule rule;

        Decoding(VisitRule rule) {
            this.rule = rule;
        }

        public DeserializationSchema createRuntimeDecoder(DynamicTableSource.Context context, DataType columns) {
            String found = columns.getLogicalType().copy(true).asSummaryString();
            if (!found.equals(COLUMNS)) {
                throw new ValidationException("format 'visit' has the columns " + COLUMNS + ", not " + found);
            }
            return new VisitFormat(rule, (RowType) columns.getLogicalType());
        }

        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }
    }
}
