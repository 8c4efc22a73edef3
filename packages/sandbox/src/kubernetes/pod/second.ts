import { PlatformError } from "@aenv/contract";
import type { SecondContainer } from "../../engine/engine.ts";
import { containerSecurity, initCommand, mainOf, resources, variables } from "./container.ts";
import type { Container, Pod, VolumeMount } from "./types.ts";

/** Both containers have the addresses of the pod, so the second init listens on a port of its own. */
export const SECOND_INIT_PORT = 61_081;

/** The second container of a template, which is that of the task. */
export function secondOf(template: Pod): Container {
  const main = mainOf(template);
  const second = template.spec.containers.find((one) => one !== main);
  if (second !== undefined) return second;
  throw new PlatformError(
    "request.invalid",
    "the pod template dualContainer has one container: add a second one, with an emptyDir at /shared in both",
  );
}

export interface SecondInput {
  readonly second: SecondContainer;
  readonly initKey: string;
  readonly baseImage: string;
}

/** Its init waits for commands, instead of the program that the template names. */
export function secondContainer(
  { second, initKey, baseImage }: SecondInput,
  { command: _command, args: _args, livenessProbe: _live, readinessProbe: _ready, ...template }: Container,
  mounts: readonly VolumeMount[],
): Container {
  const { image = baseImage } = second;
  return {
    ...template,
    image,
    env: variables(template.env ?? [], {}),
    command: initCommand(image === baseImage, SECOND_INIT_PORT, initKey),
    resources: resources(template, second.resources),
    volumeMounts: [...(template.volumeMounts ?? []), ...(image === baseImage ? [] : mounts)],
    securityContext: containerSecurity(template.securityContext),
  };
}
