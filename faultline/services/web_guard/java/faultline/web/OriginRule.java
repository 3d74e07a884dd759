package faultline.web;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Which requests may pass: those that no web page sends, and those of the page of this very server.
 *
 * <p>Plain Java without type inference: Janino compiles it (faultline/services/web_guard/build.py).
 */
public final class OriginRule {
    /** A link or a bookmark may open these: they change nothing, and their content stays with the browser. */
    private static final Set ENTRANCES = new HashSet(Arrays.asList(new String[] {"/", "/jobs/"}));

    private final Set names;

    /** The headers of one request. */
    public interface Headers {
        /** All values of a header, none when it is not there. */
        List values(String name);
    }

    /** `names`: the host names of this server, separated by commas. Without any, every request is refused. */
    public OriginRule(String names) {
        this.names = new HashSet();
        if (names != null) {
            for (String name : names.split(",")) {
                if (!name.trim().isEmpty()) {
                    this.names.add(name.trim().toLowerCase(Locale.ROOT));
                }
            }
        }
    }

    /** Why a request that came in at `port` is refused, in one line; null when it may pass. */
    public String refusal(String method, String path, int port, Headers headers) {
        List hosts = headers.values("Host");
        if (hosts.size() != 1 || !isOwnHost((String) hosts.get(0), port)) {
            return "403: the Host header is not an address of this server\n";
        }
        for (Object origin : headers.values("Origin")) {
            if (!isOwnOrigin((String) origin, port)) {
                return "403: a web page of another origin may not call this server\n";
            }
        }
        if (comesFromOutside(port, headers) && !isVisit(method, path, headers)) {
            return "403: a web page of another origin may not call this server; type its address instead\n";
        }
        return null;
    }

    /** With a GET by a link, an image or a frame browsers send no Origin, but one of these. */
    private boolean comesFromOutside(int port, Headers headers) {
        for (Object site : headers.values("Sec-Fetch-Site")) {
            if (!"same-origin".equals(site) && !"none".equals(site)) {
                return true;
            }
        }
        for (Object referer : headers.values("Referer")) {
            String[] parts = ((String) referer).split("/", 4);
            if (parts.length < 3 || !isOwnOrigin(parts[0] + "//" + parts[2], port)) {
                return true;
            }
        }
        return false;
    }

    /** A client may leave the port out, as Flink's own does. A browser does so for port 80 alone. */
    private boolean isOwnHost(String host, int port) {
        return names.contains(host.toLowerCase(Locale.ROOT)) || isOwnAuthority(host, port);
    }

    private boolean isOwnOrigin(String origin, int port) {
        return origin.startsWith("http://") && isOwnAuthority(origin.substring("http://".length()), port);
    }

    private boolean isOwnAuthority(String authority, int port) {
        String end = ":" + port;
        int length = authority.length() - end.length();
        return authority.endsWith(end) && names.contains(authority.substring(0, length).toLowerCase(Locale.ROOT));
    }

    /** The user follows a link to an entrance, as a page of its own: no frame, no script, no form. */
    private static boolean isVisit(String method, String path, Headers headers) {
        return "GET".equals(method)
                && ENTRANCES.contains(path)
                && headers.values("Sec-Fetch-Mode").contains("navigate")
                && headers.values("Sec-Fetch-Dest").contains("document");
    }
}
