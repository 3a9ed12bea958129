package browser

// Idle is a proxy that nobody serves: each page has one of its own, and what is
// not a page's has no way out.
const idle = "http://127.0.0.1:9"

// flags are those that a browser is started with. There is none that switches
// its sandbox off.
func flags(dir string) []string {
	return []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + dir,
		"--no-startup-window", "--no-first-run", "--no-default-browser-check",
		// The one way out is the proxy. It is not gone around for addresses of
		// the loopback, names are not looked up, and there is no other protocol.
		"--proxy-server=" + idle, "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		"--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--dns-prefetch-disable",
		// Nobody looks at the page.
		"--disable-gpu", "--hide-scrollbars", "--mute-audio", "--window-size=1280,1024",
		"--blink-settings=imagesEnabled=false", "--disable-remote-fonts", "--autoplay-policy=user-gesture-required",
		"--block-new-web-contents", "--deny-permission-prompts", "--disable-notifications",
		// It says nothing to anybody on its own.
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-domain-reliability",
		"--disable-client-side-phishing-detection", "--safebrowsing-disable-auto-update", "--metrics-recording-only",
		"--disable-breakpad", "--disable-crash-reporter", "--no-pings", "--disable-extensions", "--disable-default-apps",
		"--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider,PaintHolding",
		"--password-store=basic", "--use-mock-keychain",
		// Pages that are not in front run as fast as any.
		"--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
		"--disable-dev-shm-usage", "--js-flags=--max-old-space-size=512",
		"--lang=en-US",
	}
}
