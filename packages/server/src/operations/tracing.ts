import type { IncomingHttpHeaders } from "node:http";
import type { Span } from "@opentelemetry/api";

/** A span. */
export interface Traced {
  /** The trace headers for the next hop, so that its spans become children of this one. */
  readonly headers: Readonly<Record<string, string>>;
  end(attributes: Readonly<Record<string, string | number>>, isFailure: boolean): void;
}

export interface Tracing {
  /** Starts a span below the one that the caller's W3C headers name. */
  start(name: string, incoming: IncomingHttpHeaders): Traced;
  close(): Promise<void>;
}

const untraced: Traced = { headers: {}, end: () => {} };

/** Records nothing; the headers of the caller pass through unchanged. */
export const noTracing: Tracing = { start: () => untraced, close: async () => {} };

/** Sends traces to an OTLP collector. Imported lazily: it takes longer to load than the rest of the server. */
export async function openTracing(url: string, version: string): Promise<Tracing> {
  const [
    { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, defaultTextMapGetter, defaultTextMapSetter },
    sdk,
    { OTLPTraceExporter },
    core,
    resources,
  ] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/core"),
    import("@opentelemetry/resources"),
  ]);
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/\/$/, "").replace(/\/v1\/traces$/, "")}/v1/traces` });
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({ "service.name": "aenv-server", "service.version": version }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  const tracer = provider.getTracer("aenv", version);
  const propagator = new core.W3CTraceContextPropagator();
  const headersBelow = (span: Span) => {
    const headers: Record<string, string> = {};
    propagator.inject(trace.setSpan(ROOT_CONTEXT, span), headers, defaultTextMapSetter);
    return headers;
  };
  return {
    start(name, incoming) {
      const parent = propagator.extract(ROOT_CONTEXT, incoming, defaultTextMapGetter);
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER }, parent);
      return {
        headers: headersBelow(span),
        end: (attributes, isFailure) => {
          span.setAttributes(attributes);
          if (isFailure) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    close: () => provider.shutdown(),
  };
}
