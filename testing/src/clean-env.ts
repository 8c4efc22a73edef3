// What the person at this machine has set up for daily use must not change what the tests see.
for (const name of ["DUMMY_INSTANCE_IP", "AENV_SYSTEM_URL", "AENV_API_KEY", "HUB_BACKEND"]) delete process.env[name];
