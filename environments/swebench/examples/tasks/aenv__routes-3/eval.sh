#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
git status
git show
git -c core.fileMode=false diff 61614124292bc7f80082e9fbbc29d28cc7824032
git checkout 61614124292bc7f80082e9fbbc29d28cc7824032 test/pattern.test.js
git apply -v - <<'EOF_114329324912'
diff --git a/test/pattern.test.js b/test/pattern.test.js
index 413fe22..f10f194 100644
--- a/test/pattern.test.js
+++ b/test/pattern.test.js
@@ -18,3 +18,17 @@ test("a parameter is one segment of the path", () => {
 test("a pattern may have several parameters", () => {
   assert.deepEqual(compile("/:year/:month")("/2024/05"), { year: "2024", month: "05" });
 });
+
+test("parameters are decoded", () => {
+  assert.deepEqual(compile("/files/:name")("/files/a%20b%2Fc"), { name: "a b/c" });
+});
+
+test("parameters that cannot be decoded are kept", () => {
+  assert.deepEqual(compile("/files/:name")("/files/100%"), { name: "100%" });
+});
+
+test("a dot in a pattern is a dot", () => {
+  const match = compile("/feed.:kind");
+  assert.deepEqual(match("/feed.xml"), { kind: "xml" });
+  assert.equal(match("/feedxxml"), null);
+});

EOF_114329324912
: '>>>>> Start Test Output'
node --test-reporter=tap test/pattern.test.js
: '>>>>> End Test Output'
git checkout 61614124292bc7f80082e9fbbc29d28cc7824032 test/pattern.test.js
