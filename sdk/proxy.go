package sdk

// ProxyEnv returns the environment variables that tell programs of a proxy as
// their one way out. Most programs obey one of them; the lists of what goes
// around the proxy are empty.
func ProxyEnv(url string) map[string]string {
	env := map[string]string{"NO_PROXY": "", "no_proxy": "", "npm_config_noproxy": "", "NODE_USE_ENV_PROXY": "1"}
	for _, name := range []string{
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
		"GRPC_PROXY", "grpc_proxy", "npm_config_proxy", "npm_config_https_proxy",
	} {
		env[name] = url
	}
	return env
}
