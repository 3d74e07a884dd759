package faultline.web;

import java.io.IOException;
import java.util.Collections;
import java.util.List;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;

import org.sparkproject.jetty.ee10.servlet.ServletContextHandler;

/** Answers 403 to what {@link OriginRule} refuses, before every page of Spark's UI (spark.ui.filters). */
public final class SparkGuard implements Filter {
    private OriginRule rule;

    /** The parameter `names`: the host names of this server. */
    public void init(FilterConfig config) {
        rule = new OriginRule(config.getInitParameter("names"));
        // Jetty answers /jobs by a redirect to /jobs/ before any filter. So it leaves that to this one.
        ServletContextHandler.getServletContextHandler(config.getServletContext()).setAllowNullPathInContext(true);
    }

    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        final HttpServletRequest http = (HttpServletRequest) request;
        OriginRule.Headers headers = new OriginRule.Headers() {
            public List values(String name) {
                return Collections.list(http.getHeaders(name));
            }
        };
        String reason = rule.refusal(http.getMethod(), http.getRequestURI(), http.getLocalPort(), headers);
        HttpServletResponse answer = (HttpServletResponse) response;
        if (reason == null) {
            String path = http.getRequestURI();
            if (!path.isEmpty() && path.equals(http.getContextPath())) {
                answer.sendRedirect(path + (http.getQueryString() == null ? "/" : "/?" + http.getQueryString()));
            } else {
                chain.doFilter(request, response);
            }
            return;
        }
        answer.setStatus(HttpServletResponse.SC_FORBIDDEN);
        answer.setContentType("text/plain; charset=UTF-8");
        answer.getWriter().write(reason);
    }

    public void destroy() {}
}
