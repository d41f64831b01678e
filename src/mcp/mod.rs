//! (mcp)
