package ring

// noFollow is nothing here: making a link needs a privilege that tools lack.
const noFollow = 0
