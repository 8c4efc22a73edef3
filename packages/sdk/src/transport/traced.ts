import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { HttpAnswer, HttpRequest, Transport } from "../http/http.ts";

/**
 * Records every request as a span of the caller's trace, and sends the trace context in W3C headers. Without tracing set up it
 * costs almost nothing and sends no headers.
 */
export function tracedTransport(inner: Transport): Transport {
  const tracer = trace.getTracer("aenvironment");
  return {
    send(request) {
      const span = tracer.startSpan(request.method, CLIENT);
      return span.isRecording() || trace.getActiveSpan() !== undefined ? sendTraced(inner, request, span) : inner.send(request);
    },
  };
}

const CLIENT = { kind: SpanKind.CLIENT };

async function sendTraced(inner: Transport, request: HttpRequest, span: Span): Promise<HttpAnswer> {
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
}
