package faultline.web;

import java.util.Map;
import java.util.Optional;

import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.io.network.netty.InboundChannelHandlerFactory;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandlerAdapter;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandlerContext;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.HttpServerCodec;

/** Flink's REST server asks this for a handler for each connection. Found by META-INF/services. */
public final class FlinkGuardFactory implements InboundChannelHandlerFactory {
    /** In Flink's configuration: the host names of this server. */
    private static final String NAMES = "web-guard.names";

    public int priority() {
        return 0;
    }

    public Optional createHandler(Configuration configuration, Map responseHeaders) {
        return Optional.of(new Placer(new OriginRule((String) configuration.toMap().get(NAMES))));
    }

    /**
     * Flink would put the guard behind its upload handler, which writes the body of a request to disk first. This
     * puts it in front: right behind the HTTP codec.
     */
    private static final class Placer extends ChannelHandlerAdapter {
        private final OriginRule rule;

        Placer(OriginRule rule) {
            this.rule = rule;
        }

        public void handlerAdded(ChannelHandlerContext context) {
            ChannelHandlerContext codec = context.pipeline().context(HttpServerCodec.class);
            if (codec == null) {
                // No connection rather than one without a guard.
                context.close();
                return;
            }
            context.pipeline().addAfter(codec.name(), "web-guard", new FlinkGuard(rule));
            context.pipeline().remove(this);
        }
    }
}
