"""What makes and checks a release; nothing here is part of the package."""
