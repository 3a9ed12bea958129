package plugin

// Serve does nothing: a module is entered through its exports.
func Serve() {}
