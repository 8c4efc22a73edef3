export const needed: string;
export function isNewEnough(version: string): boolean;
export function tooOld(subject: string): string;
export function refuseOldNode(subject: string): void;
