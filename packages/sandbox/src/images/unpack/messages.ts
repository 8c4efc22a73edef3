import type { DevicePolicy } from "../layer-tar.ts";
import type { LayerError, UnpackLimit, UnpackLimits } from "./limits.ts";

/** The argument of the program that unpacks the layers of one image. */
export interface UnpackSettings {
  readonly limits: UnpackLimits;
  readonly devices?: DevicePolicy;
}

/** One line of its input for each layer. It ends with its input. */
export interface UnpackRequest {
  readonly diffId: string;
  readonly blob: string;
  readonly folder: string;
}

/** One line of its output for each request. */
export type UnpackAnswer =
  | { readonly kind: "done" }
  | { readonly kind: "limit"; readonly limit: UnpackLimit; readonly value: number }
  | { readonly kind: "error"; readonly code: LayerError["code"] | null; readonly message: string };

/** Longer messages are cut, and longer lines refused: what is in them comes from the layer. */
export const MAX_MESSAGE = 2_000;
export const MAX_LINE_BYTES = 16 * 2 ** 10;
