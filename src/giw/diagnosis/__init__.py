"""Which of the four cases is this?"""
