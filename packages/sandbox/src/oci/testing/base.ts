import { testRootDigest, writeTestRoot } from "../../fixtures/test-root.ts";
import type { LayerStore } from "../../images/layers.ts";
import type { RootFiles } from "../container.ts";

/** The root file system of tests as a layer. */
export async function testBase(layers: LayerStore): Promise<RootFiles> {
  const id = testRootDigest();
  await layers.add(id, async (files) => writeTestRoot(files));
  return { layers: [id], config: null };
}
