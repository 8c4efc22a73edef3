export { type BuildkitDaemon, startBuildkit } from "./buildkit.ts";
export { loadClusterArchive } from "./cluster-archive.ts";
export { loadClusterImage } from "./cluster-image.ts";
export { findNodeProcess } from "./cluster-node.ts";
export {
  a2aOldPythonPath,
  a2aPythonPath,
  buildxPluginPath,
  bunPath,
  type Component,
  type ComponentName,
  chromiumPath,
  clusterProgram,
  components,
  composePluginPath,
  harborPythonPath,
  imageLoader,
  kubeconfigPath,
  oldGymnasiumPath,
  oldNode,
  pythonPath,
  pythonRlPath,
  pythonVerifiersPath,
  swebenchPath,
  swebenchPythonPath,
  tau2Path,
  terminalBenchVectors,
  torchPythonPath,
} from "./components.ts";
export { type DockerDaemon, startDocker } from "./docker.ts";
export { writeDockerArchive } from "./docker-archive.ts";
export { debianRoot, ORIGINAL_SDK_PORT, originalSdkImage } from "./images.ts";
export { describeNeeding, type MissingComponent, missing } from "./needs.ts";
export { type PodmanService, startPodman } from "./podman.ts";
export { Random } from "./random.ts";
export { type RedisServer, type RedisSettings, startRedis } from "./redis.ts";
export { type ImageRegistry, startImageRegistry } from "./registry.ts";
export { faulty, type ModelFault, modelFaults } from "./scripted-openai/faults.ts";
export type {
  Message,
  ModelRequest,
  OfferedTool,
  Script,
  ScriptedAnswer,
  ScriptedToolCall,
  ScriptedTurn,
  ToolCall,
} from "./scripted-openai/script.ts";
export { type ScriptedOpenAi, scriptedOpenAi } from "./scripted-openai/server.ts";
export type { ScriptedTokens } from "./scripted-openai/tokens.ts";
export { limitMemoryAbove } from "./short-memory.ts";
export { dockerAuth, pushSmallImage, type SmallImage, writeSmallImage, writeSmallRoot } from "./small-image.ts";
export { benchmarkRoot, pushSweBase, pushSweImages, sweExamples, sweImages, sweRows } from "./swe-images.ts";
export { timeless } from "./timeless.ts";
export { mountSmallDisk, mountUntranslatedDisk, type SmallDisk } from "./tmpfs.ts";
export { type Files, type Tree, temporaryTree } from "./tree.ts";
