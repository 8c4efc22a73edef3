import * as z from "zod";

const MAX_ALLOWED = 256;

/** A host name, `*.` and a domain, an IPv4 address or network; then `:PORT`, or every port. */
const DESTINATION = /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?:\/\d{1,2})?(?::\d{1,5})?$/i;

/**
 * Where programs of a sandbox may connect to: nowhere, to the listed destinations (`api.example.com:443`, `*.example.com`,
 * `10.1.0.0/16:5432`), or everywhere outside of the platform. The machine itself and other sandboxes are never reachable.
 */
export const egressPolicy = z.union([
  z.literal("none"),
  z.literal("open"),
  z.strictObject({ allow: z.array(z.string().regex(DESTINATION, "must be HOST or HOST:PORT")).min(1).max(MAX_ALLOWED) }),
]);

export type EgressPolicy = z.infer<typeof egressPolicy>;
