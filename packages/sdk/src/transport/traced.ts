import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Transport } from "../http/http.ts";

/**
 * Records every request as a span of the caller's trace, and sends the trace context in W3C headers. Without tracing set up it
 * costs almost nothing and sends no headers.
 */
export function tracedTransport(inner: Transport): Transport {
  const tracer = trace.getTracer("aenvironment");
  return {
    async send(request) {
      const span = tracer.startSpan(request.method, { kind: SpanKind.CLIENT });
      if (!span.isRecording() && trace.getActiveSpan() === undefined) return inner.send(request);
      span.setAttribute("url.path", new URL(request.url).pathname);
      const headers = { ...request.headers };
      propagation.inject(trace.setSpan(context.active(), span), headers);
      try {
        const answer = await inner.send({ ...request, headers });
        span.setAttribute("http.response.status_code", answer.status);
        if (answer.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        return answer;
      } catch (error) {
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
  };
}
