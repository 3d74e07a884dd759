package faultline.visits;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.Arrays;
import java.util.regex.Pattern;

import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonParser;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonToken;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.StreamReadConstraints;

/** Decides whether a value is a visit: the rule of faultline/formats/visit.py, which also gives the patterns and the nesting. */
public final class VisitRule implements Serializable {
    /** What a value is: a visit, or the number of a reason in faultline.formats.visit.REFUSAL_REASONS. */
    static final int VISIT = 0;
    static final int NULL_VALUE = 1;
    static final int NOT_UTF8 = 2;
    static final int NOT_ONE_OBJECT = 3;
    static final int NO_VISIT_ID = 4;
    static final int NO_EVENT_TIME = 5;

    private static final long NO_TIME = Long.MIN_VALUE;
    private static final long DAY_MS = 86400000L;

    private final Pattern visitIdPattern;
    private final Pattern eventTimePattern;
    private final int maxNesting;
    private transient JsonFactory json;
    private transient String day;
    private transient long dayStart;

    /** Fields of the last visit. */
    String visitId;
    long eventTime;

    public VisitRule(String visitIdPattern, String eventTimePattern, int maxNesting) {
        this.visitIdPattern = Pattern.compile(visitIdPattern);
        this.eventTimePattern = Pattern.compile(eventTimePattern);
        this.maxNesting = maxNesting;
    }

    /** Reads one value; for a VISIT, visitId and eventTime hold its fields afterwards. */
    public int read(byte[] value) {
        if (value == null) {
            return NULL_VALUE;
        }
        String text = new String(value, StandardCharsets.UTF_8);
        // Decoding puts U+FFFD where bytes are not UTF-8; a value can also contain that character itself.
        if (text.indexOf('\uFFFD') >= 0 && !Arrays.equals(text.getBytes(StandardCharsets.UTF_8), value)) {
            return NOT_UTF8;
        }
        String time;
        try {
            JsonParser parser = json().createParser(text);
            try {
                time = readObject(parser);
            } finally {
                parser.close();
            }
        } catch (IOException notJson) {
            return NOT_ONE_OBJECT;
        }
        if (visitId == null || !visitIdPattern.matcher(visitId).matches()) {
            return NO_VISIT_ID;
        }
        eventTime = time == null ? NO_TIME : milliseconds(time);
        return eventTime == NO_TIME ? NO_EVENT_TIME : VISIT;
    }

    /** Reads one object and nothing else: sets visitId and returns event_time, null where it is not a string. */
    private String readObject(JsonParser parser) throws IOException {
        visitId = null;
        String time = null;
        if (parser.nextToken() != JsonToken.START_OBJECT) {
            throw new IOException("not an object");
        }
        // Of a name that occurs twice the last one counts.
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            String name = parser.currentName();
            JsonToken token = parser.nextToken();
            if (name.equals("visit_id")) {
                visitId = token == JsonToken.VALUE_STRING ? parser.getText() : null;
            } else if (name.equals("event_time")) {
                time = token == JsonToken.VALUE_STRING ? parser.getText() : null;
            }
            parser.skipChildren();
        }
        if (parser.nextToken() != null) {
            throw new IOException("more than one document");
        }
        return time;
    }

    private JsonFactory json() {
        if (json == null) {
            // No limit but the nesting: a Kafka record is small enough for every other one.
            StreamReadConstraints limits = StreamReadConstraints.builder()
                .maxNestingDepth(maxNesting)
                .maxNameLength(Integer.MAX_VALUE)
                .maxNumberLength(Integer.MAX_VALUE)
                .maxStringLength(Integer.MAX_VALUE)
                .build();
            json = new JsonFactory();
            json.setStreamReadConstraints(limits);
            // Names come from outside: a cache of them would only grow.
            json.disable(JsonFactory.Feature.INTERN_FIELD_NAMES);
        }
        return json;
    }

    /** Milliseconds since the epoch of an event time; NO_TIME when the text is not one. */
    private long milliseconds(String text) {
        if (!eventTimePattern.matcher(text).matches()) {
            return NO_TIME;
        }
        String date = text.substring(0, 10);
        // Neighbouring visits share their day.
        if (!date.equals(day)) {
            int year = number(text, 0, 4);
            int month = number(text, 5, 7);
            int dayOfMonth = number(text, 8, 10);
            if (month < 1 || month > 12 || dayOfMonth < 1 || dayOfMonth > YearMonth.of(year, month).lengthOfMonth()) {
                return NO_TIME;
            }
            dayStart = LocalDate.of(year, month, dayOfMonth).toEpochDay() * DAY_MS;
            day = date;
        }
        int seconds = (number(text, 11, 13) * 60 + number(text, 14, 16)) * 60 + number(text, 17, 19);
        int fraction = 0;
        for (int at = 20; at < 23; at++) {
            boolean isDigit = text.charAt(19) == '.' && text.charAt(at) >= '0' && text.charAt(at) <= '9';
            fraction = fraction * 10 + (isDigit ? text.charAt(at) - '0' : 0);
            if (!isDigit) {
                // Digits after the end of the fraction do not count.
                for (int rest = at + 1; rest < 23; rest++) {
                    fraction *= 10;
                }
                break;
            }
        }
        return dayStart + seconds * 1000L + fraction;
    }

    private static int number(String text, int from, int to) {
        int value = 0;
        for (int at = from; at < to; at++) {
            value = value * 10 + (text.charAt(at) - '0');
        }
        return value;
    }
}
