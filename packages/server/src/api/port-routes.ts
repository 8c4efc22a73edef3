import { controlRoutes } from "@aenv/contract";
import { z } from "zod";
import type { LinkHosts } from "../gateway/ports/link-hosts.ts";
import { DEFAULT_MINUTES, type Presign } from "../gateway/ports/presign.ts";
import type { DataUrl } from "../http/data-url.ts";
import * as answers from "./answers.ts";
import { type ApiRoute, bodyLimits, endpointOf, route } from "./route.ts";

export interface PortRouteOptions {
  readonly presign: Presign;
  readonly linkHosts: LinkHosts;
  /** The data port's URL for clients. */
  readonly dataUrl: DataUrl;
}

const id = z.object({ id: z.string().min(1).max(128) });
const body = z.object({
  port: z.int().min(1).max(65_535),
  expiration_time_in_minutes: z.number().positive().nullish(),
});

export function portRoutes({ presign, linkHosts, dataUrl }: PortRouteOptions): ApiRoute[] {
  return [
    route({
      ...endpointOf(controlRoutes.presignUrl),
      summary: "Create a short-lived link to a port inside an instance's sandbox, for HTTP and WebSocket",
      answer: answers.instances.link,
      audited: { event: "port.opened", of: (_, { params, body }) => [`${params.id}:${body.port}`] },
      tag: "instances",
      roles: ["trainer", "publisher"],
      params: id,
      body,
      maxBodyBytes: bodyLimits.fields,
      handle: async ({ params, body, caller, request }) => {
        const minutes = body.expiration_time_in_minutes ?? DEFAULT_MINUTES;
        const { token, expiresAt } = await presign.link(params.id, body.port, minutes, caller);
        const base = dataUrl(request.headers.host);
        const pathUrl = `${base}/port/${token}`;
        const hostUrl = linkHosts.urlOf(token, new URL(base).host);
        // Node and Python often cannot resolve names below localhost, so these are not the default. Browsers are sent on to them.
        const url = linkHosts.hasDomain && hostUrl !== null ? hostUrl : pathUrl;
        return { url, host_url: hostUrl, path_url: pathUrl, expires_at: expiresAt };
      },
    }),
  ];
}
