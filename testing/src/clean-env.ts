// The developer's own settings must not change the tests.
for (const name of ["DUMMY_INSTANCE_IP", "AENV_SYSTEM_URL", "AENV_API_KEY", "HUB_BACKEND"]) delete process.env[name];
