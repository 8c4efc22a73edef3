import { engines, type ImageStore } from "@aenv/sandbox";
import { readServerConfig } from "@aenv/server";

/** The images of the engine oci of a server with these settings. */
export async function openOciImages(settings: { readonly home: string; readonly imageStore?: string }): Promise<ImageStore> {
  return (await engines.oci.openImages?.(readServerConfig({ flags: settings, variables: {} }), {})) as ImageStore;
}
