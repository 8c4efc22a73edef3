// Plain JavaScript, so that a Node too old for the rest can read it and say so in one line.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `AEnv needs Node 22.19 or newer, and this is ${process.versions.node}. On Linux x64 \`npm install\` brings one; elsewhere install it from https://nodejs.org.`,
  );
  process.exit(1);
}
