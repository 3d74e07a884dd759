package faultline.web;

import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;

import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelFutureListener;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandlerContext;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelInboundHandlerAdapter;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.DefaultFullHttpResponse;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.HttpRequest;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.HttpResponseStatus;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.HttpVersion;
import org.apache.flink.shaded.netty4.io.netty.handler.codec.http.LastHttpContent;
import org.apache.flink.shaded.netty4.io.netty.util.ReferenceCountUtil;

/** Answers 403 to what {@link OriginRule} refuses, on one connection of Flink's REST server. */
final class FlinkGuard extends ChannelInboundHandlerAdapter {
    private final OriginRule rule;
    private boolean refused = false;

    FlinkGuard(OriginRule rule) {
        this.rule = rule;
    }

    public void channelRead(ChannelHandlerContext context, Object message) {
        if (message instanceof HttpRequest) {
            String reason = refusal(context, (HttpRequest) message);
            refused = reason != null;
            if (refused) {
                answer(context, reason);
            }
        }
        if (!refused) {
            context.fireChannelRead(message);
            return;
        }
        // The body is read and dropped: a connection that is closed over unread bytes may lose the answer.
        boolean last = message instanceof LastHttpContent;
        ReferenceCountUtil.release(message);
        if (last) {
            context.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        }
    }

    private String refusal(ChannelHandlerContext context, final HttpRequest request) {
        int port = ((InetSocketAddress) context.channel().localAddress()).getPort();
        String path = request.uri().split("\\?", 2)[0];
        OriginRule.Headers headers = new OriginRule.Headers() {
            public List values(String name) {
                return request.headers().getAll(name);
            }
        };
        return rule.refusal(request.method().name(), path, port, headers);
    }

    private static void answer(ChannelHandlerContext context, String reason) {
        byte[] body = reason.getBytes(StandardCharsets.UTF_8);
        DefaultFullHttpResponse response = new DefaultFullHttpResponse(
                HttpVersion.HTTP_1_1, HttpResponseStatus.FORBIDDEN, Unpooled.wrappedBuffer(body));
        response.headers().set("Content-Type", "text/plain; charset=UTF-8");
        response.headers().set("Content-Length", String.valueOf(body.length));
        response.headers().set("Connection", "close");
        context.writeAndFlush(response);
    }
}
