import { describe, expect, it } from "vitest";
import { isCompared, isTaken } from "./rules.ts";

const image = new Set(["/usr/bin/cat", "/usr/lib/python3.11/os.py", "/usr/local/lib/python3.13/json/__init__.py", "/etc/passwd"]);
const rules = { isInImage: (path: string) => image.has(path), taken: ["/etc/profile.d/app.sh"] };

describe("changes that reach the verifier's sandbox", () => {
  it.each([
    "/app/answer.txt",
    "/app/conftest.py",
    "/app/sitecustomize.py",
    "/app/__pycache__/answer.cpython-311.pyc",
    "/etc/passwd",
    "/etc/nginx/nginx.conf",
    "/root/.ssh/config",
    "/usr/bin/new-program",
    "/usr/local/lib/python3.13/site-packages/requests/api.py",
    "/usr/local/lib/python3.13/site-packages/requests-2.32.dist-info/METADATA",
    // Declared by the task.
    "/etc/profile.d/app.sh",
  ])("are taken: %s", (path) => {
    expect([isCompared(path), isTaken(path, rules)]).toEqual([true, true]);
  });

  it.each([
    "/usr/bin/cat",
    "/usr/local/bin/cat",
    "/usr/lib/python3.11/os.py",
    "/etc/ld.so.preload",
    "/etc/profile.d/other.sh",
    "/conftest.py",
    "/pytest.ini",
    "/root/.bashrc",
    "/home/agent/.config/pip/pip.conf",
    "/root/.config/uv/uv.toml",
    "/root/.cache/uv/archive-v0/x/pytest/__init__.py",
    "/etc/uv/uv.toml",
    // Debian's Python reads this one.
    "/etc/python3.11/sitecustomize.py",
    "/usr/local/lib/python3.13/sitecustomize.py",
    "/usr/lib/python3/dist-packages/usercustomize/__init__.py",
    "/opt/venv/lib/python3.12/site-packages/sitecustomize.py",
    "/root/.local/lib/python3.11/site-packages/usercustomize.py",
    "/app/.venv/lib/python3.12/site-packages/a.pth",
    "/usr/local/lib/python3.13/site-packages/cheat-1.0.dist-info/entry_points.txt",
    "/usr/local/lib/python3.13/json/__pycache__/__init__.cpython-313.pyc",
  ])("are not taken: %s", (path) => {
    expect(isTaken(path, rules)).toBe(false);
  });

  it.each(["/tests/test.sh", "/logs/verifier/reward.txt", "/solution/solve.sh", "/proc/1/environ"])("are not even compared: %s", (path) => {
    expect(isCompared(path)).toBe(false);
  });
});
